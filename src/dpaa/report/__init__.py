"""Figures and HTML pages from existing results; nothing is trained or evaluated here."""

from dpaa.report._charts import Chart, Line, check_figures, line, save_figure
from dpaa.report._page import audit_page, backtest_page, check_page, simulation_page, write_page
from dpaa.report._runs import trace_figures

__all__ = ["Chart", "Line", "audit_page", "backtest_page", "check_figures", "check_page", "line", "save_figure"]
__all__ += ["simulation_page", "trace_figures", "write_page"]
