"""A page as a machine reads it: tags, attributes and text, without a browser."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"br", "col", "hr", "input", "meta", "link", "wbr", "rect", "line", "path", "stop"}


@dataclass
class Tag:
    name: str
    attributes: dict[str, str]
    text: str = ""
    inside: list[str] = field(default_factory=list)
    """Names of the elements around it."""


class Reader(HTMLParser):
    """All tags of a page in order; text goes to every open tag."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[Tag] = []
        self._open: list[Tag] = []
        self.feed(page)
        self.close()
        assert not self._open, f"never closed: {[tag.name for tag in self._open]}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = Tag(tag, {name: value or "" for name, value in attrs}, inside=[outer.name for outer in self._open])
        assert len(attrs) == len(found.attributes), f"an attribute twice: {attrs}"
        self.tags.append(found)
        if tag not in VOID:
            self._open.append(found)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        assert self._open, f"</{tag}> without beginning"
        assert self._open[-1].name == tag, f"</{tag}> closes <{self._open[-1].name}>"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        for tag in self._open:
            tag.text += data

    def named(self, name: str, **attributes: str) -> list[Tag]:
        """Tags of a name with these attributes (`class_` is `class`)."""
        wanted = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items()}
        return [tag for tag in self.tags if tag.name == name and wanted.items() <= tag.attributes.items()]
