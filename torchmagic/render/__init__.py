"""How things look: values in, text or HTML out."""
