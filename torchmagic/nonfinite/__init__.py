"""NaN and infinity: which values hold them, where they began, why, and what they reached."""
