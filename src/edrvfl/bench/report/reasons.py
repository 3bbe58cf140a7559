"""Why a method's mean accuracy is far from the published one, in plain words.

To explain a column, add a line. Only methods with a figure that is far from the published one are shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

FAR = 2.0  # points between the measured and the published mean that ask for a reason
NOT_EXPLAINED = "not explained yet"

REASONS: Mapping[str, str] = MappingProxyType({})
