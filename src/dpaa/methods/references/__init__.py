"""Simple references without epochs, the rows every table needs."""
