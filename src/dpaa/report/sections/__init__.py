"""The chapters of the page, one file each: inputs in, a `Section` out; a chapter without inputs is empty."""
