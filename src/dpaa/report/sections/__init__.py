"""The chapters of the page, one file each: material in, a `Section` out; a chapter without material is empty."""
