"""A run as an HTTP service, and its live page.

`options` needs neither the packages of the service nor torch; everything else starts with `_` and is imported by
`dpaa serve` when it is needed.
"""

from dpaa.serving.options import ServeOptions, check_token, is_loopback

__all__ = ["ServeOptions", "check_token", "is_loopback"]
