"""Values that keep the autograd graph of step after step: which ones, and how to write the line instead."""
