"""Tensors that are not where they are used: the kinds of evidence, each in a module of its own."""
