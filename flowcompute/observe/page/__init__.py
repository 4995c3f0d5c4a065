"""A page that shows a run to a browser of this machine while it works."""

from flowcompute.observe.page.live_page import LivePage, check_page_port

__all__ = ["LivePage", "check_page_port"]
