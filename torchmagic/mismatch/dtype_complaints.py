"""What torch says when a dtype does not fit, in the wordings of torch 2.4 to 2.13."""

from __future__ import annotations

import re
from typing import Final, Literal

Complaint = Literal[
    "classes", "probabilities", "index", "mask", "target", "in place", "numbers", "types differ", "array", "array dtype"
]
"""classes: class numbers are asked for. probabilities: integers stand where class probabilities are asked for. index:
a whole number is asked for as an index. mask: a boolean is asked for. target: a loss wants the target in the dtype of
its input. in place: a result does not fit into the tensor that is to hold it. numbers: the operation is not defined for
the dtype. types differ: operands of one operation differ. array: a numpy array stands where a tensor is asked for.
array dtype: an array of objects or texts is to become a tensor."""

_WORDINGS: Final[tuple[tuple[str, Complaint], ...]] = (
    (r"argument '\w+' \(position \d+\) must be Tensor, not (numpy\.ndarray|list|DataFrame|Series)", "array"),
    (r"can't convert np\.ndarray of type numpy\.", "array dtype"),
    (r"expected target dtype to be Long", "classes"),
    (r"Expected floating point type for target with class probabilities", "probabilities"),
    (r"for argument #\d+ '(indices|index)' to have .*scalar types?:? Long", "index"),
    (r"tensors used as indices must be", "index"),
    (r"Expected dtype int(32/int)?64 for index|Expected dtype int32 or int64 for index", "index"),
    (r"one_hot is only applicable to index tensor", "index"),
    (r"\"bincount_\w+\" not implemented for", "index"),
    (r"only supports boolean masks|expected BoolTensor for mask|condition to be a boolean tensor", "mask"),
    (r"Expected attn_mask dtype to be bool or float", "mask"),
    (r"operator\.invert\) is only implemented on integer and Boolean|\"bitwise_not_\w+\" not implemented", "mask"),
    (r"result type \w+ can't be cast to the desired output type", "in place"),
    (r"Found dtype \w+ but expected \w+", "target"),
    (r"not implemented for '\w+'", "numbers"),
    (r"could not infer output dtype\. Input dtype must be", "numbers"),
    (r"only support(s)? floating[ -]point( and complex)? dtypes", "numbers"),
    (r"Expected a floating point or complex tensor as input", "numbers"),
    (r"[Oo]nly Tensors of floating point( and complex)? dtype can require gradients", "numbers"),
    (r"Integral inputs not supported", "numbers"),
    (
        r"must have the same dtype|to have (the )?same dtype|dtypes? match, got|should have the same dtype",
        "types differ",
    ),
    (r"expected scalar type \w+ but found \w+", "types differ"),
    (
        r"Input type \((?!torch\.|MPS|XLA)[\w: ]+\) and (weight|bias) type \([\w: ]+\) should be the same",
        "types differ",
    ),
    (r"mixed dtype \(CPU\)", "types differ"),
    (r"RNN input dtype \(.+\) does not match weight dtype", "types differ"),
    (r"input tensor(s)? (with|are not) .*dtype|are not the same dtype", "types differ"),
    (r"Expected self\.dtype to be equal to src\.dtype", "types differ"),
    (r"expected dtype [\w: ]+ for `\w+` but got dtype", "types differ"),
    (r"get_mkldnn_dtype: unsupported data type", "types differ"),
)
_COMPILED: Final = tuple((re.compile(pattern), complaint) for pattern, complaint in _WORDINGS)
_ERRORS: Final = (RuntimeError, IndexError, TypeError, ValueError, NotImplementedError)


def complaint_of(error: BaseException | None) -> Complaint | None:
    """Tell what torch complains of; None when the error is none of torch's about dtypes."""
    if type(error) not in _ERRORS:
        return None
    text = str(error)
    return next((complaint for pattern, complaint in _COMPILED if pattern.search(text)), None)
