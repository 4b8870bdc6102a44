"""Methods and conversions whose result is lost: left uncalled, or called on a line of their own."""
