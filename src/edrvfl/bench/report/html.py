"""The page as one HTML file that needs nothing else: no server, no network, no other file."""

from __future__ import annotations

import base64
import hashlib
import re

from .page import Page
from .templating import fill_template


def html_text(page: Page) -> str:
    """Render the page as HTML."""
    return _with_policy(fill_template("report.html", page, None, uri=data_uri))


def data_uri(text: str, kind: str) -> str:
    """Put a text into a link, so that it can be downloaded from the page itself."""
    return f"data:{kind};charset=utf-8;base64,{base64.b64encode(text.encode()).decode()}"


def _with_policy(html: str) -> str:
    """Allow the page's own script, by its hash, and nothing from anywhere else."""
    # the scripts as the browser hashes them: everything between the tags, line breaks included
    scripts = re.findall(r"<script>(.*?)</script>", html, flags=re.DOTALL)
    hashes = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src {allowed}"
    return html.replace("POLICY", policy, 1)
