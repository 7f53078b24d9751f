"""Figures and pages from finished work; nothing is trained or measured here."""

from __future__ import annotations

from dpaa.report._background import dial_figure
from dpaa.report._charts import popularity_curves
from dpaa.report._drawing import (
    PAPER,
    PHONE,
    SHAPES,
    WIDE,
    Chart,
    Theme,
    altair,
    by_name,
    check_figure,
    check_figures,
    save,
    styled,
)
from dpaa.report._html import Cell, Figure, Head, Section, html, minus, render, signed, table, with_code
from dpaa.report._page import audit_page, check_page, lorenz_curve, page, write_page
from dpaa.report._trace_charts import trace_figures

__all__ = [
    "PAPER",
    "PHONE",
    "SHAPES",
    "WIDE",
    "Cell",
    "Chart",
    "Figure",
    "Head",
    "Section",
    "Theme",
    "altair",
    "audit_page",
    "by_name",
    "check_figure",
    "check_figures",
    "check_page",
    "dial_figure",
    "html",
    "lorenz_curve",
    "minus",
    "page",
    "popularity_curves",
    "render",
    "save",
    "signed",
    "styled",
    "table",
    "trace_figures",
    "with_code",
    "write_page",
]
