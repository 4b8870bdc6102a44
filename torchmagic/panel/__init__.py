"""The panel that shows memory while cells run; the only part that imports ipywidgets."""
