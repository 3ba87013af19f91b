"""Pages of a real Chromium; errors of their scripts and violations of their policy fail the test."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

#: What the tests' Chromium is: playwright's Browser and Page, or nothing where it is not installed.
Browser = Any
Page = Any
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUIET = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
#: Notes what the policy refuses.
_VIOLATIONS = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => violations.push(event.violatedDirective + " " + event.blockedURI));
"""


@contextmanager
def opened(browser: Browser, **context: Any) -> Iterator[Page]:
    """Open a page of a context of its own; errors of its scripts and violations of its policy fail the block."""
    complaints: list[str] = []
    made = browser.new_context(**context)
    made.add_init_script(_VIOLATIONS)
    page = made.new_page()
    page.set_default_timeout(60_000)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    try:
        yield page
        complaints += page.evaluate("window.violations || []")
    finally:
        made.close()
    # What the server refuses (a rule half typed) the browser notes, too.
    assert [each for each in complaints if "status of 4" not in each] == []
