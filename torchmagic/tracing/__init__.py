"""Follow a cell operation by operation: where was the first NaN or infinity born, and which way did it take?

`watch` puts the mode on and takes it off again. At each operation `mode` runs it and shows its result to the
`onlooker`, which by its `plans` looks whether it is `finite`; of one that is not it has the `recorder` keep one of the
`events`: the user's lines (`sites`, `expressions`), the operands, and the `evidence` in them. `lineage` knows which
memory is bad, and by which event. `steps` keeps the losses and gradient norms. What a watch leaves is a `trace`.
"""
