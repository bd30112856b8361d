"""The tags and the text of a page, and a label that looks like markup, for tests of pages."""

from __future__ import annotations

from html.parser import HTMLParser

HOSTILE = (
    """</bdi></title></style><script>alert(1)</script><img src="https://example.org/x" """
    """onerror='alert(2)'>&amp;{{ 7*7 }}{% raw %}"""
)

INLINE = ("bdi", "code", "span", "strong", "sup", "var")


class Read(HTMLParser):
    """The tags of a page with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.words.append("" if tag in INLINE else " ")

    def handle_data(self, data):
        if self.tags and self.tags[-1][0] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).replace("\xa0", " ").split())
