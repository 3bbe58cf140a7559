"""The report: records -> Summary, plain data -> a page."""

from .render import render, report_command
from .summarise import Summary, read_study, summarise

__all__ = ["Summary", "read_study", "render", "report_command", "summarise"]
