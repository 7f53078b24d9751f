"""Numbers become figures; this package draws and never trains."""
