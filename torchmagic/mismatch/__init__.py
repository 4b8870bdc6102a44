"""Why torch refused an operation: operands whose dtypes or sizes do not fit together."""
