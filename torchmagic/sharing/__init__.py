"""Join the memory that live objects share with the text that made them share it and that wrote it since."""
