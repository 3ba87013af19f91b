"""The demo as one live screen: what is due, what ran and how late, the mails, the last error with its line."""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Self

from rich.box import ROUNDED, SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.layout import Layout
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from lodger.engine.demo import demo_words
from lodger.engine.demo.mailbox import Mail
from lodger.engine.demo.story import Missed, Run, Story
from lodger.engine.service.humanize import humanize_duration


class Screen:
    """Draws the story on the terminal's alternate screen; ``with`` begins and restores it.

    Args:
        now: the engine's clock, for "in 3 s".
    """

    def __init__(self, story: Story, console: Console, now: Callable[[], datetime]) -> None:
        self._story, self._console, self._now = story, console, now
        self._live = Live(console=console, screen=True, auto_refresh=False)

    def __enter__(self) -> Self:
        self._live.__enter__()
        self.refresh()
        return self

    def __exit__(self, *error: object) -> None:
        self._live.__exit__(None, None, None)

    def refresh(self) -> None:
        """Draw the present story."""
        self._live.update(self.drawn(), refresh=True)

    def drawn(self) -> RenderableType:
        """Lay the story out for the console's size."""
        height, story = self._console.height, self._story
        due_rows = max(3, min(len(story.upcoming), height // 3))
        low = max(6, min(11, height // 3))
        layout = Layout()
        # The whole link, on as many lines as it takes: people click or copy it.
        link = Text(f" {story.dashboard}", style="dim", overflow="fold") if story.dashboard else Text()
        lines = -(-len(link) // self._console.width)
        layout.split_column(
            Layout(self._head(), name="head", size=1),
            Layout(link, name="link", size=lines, visible=lines > 0),
            Layout(_panel("Due", self._due(due_rows)), name="due", size=due_rows + 4),
            Layout(_panel("Runs", self._ran(max(1, height - due_rows - low - 9 - lines))), name="ran"),
            Layout(name="low", size=low),
        )
        layout["low"].split_row(
            Layout(_panel("Mails", self._mails(low - 2)), ratio=2),
            Layout(_panel("Failures", self._wrong()), ratio=3),
        )
        return layout

    def _head(self) -> Text:
        story, now = self._story, self._now()
        text = Text(no_wrap=True, overflow="ellipsis")
        text.append(" Lodger ", style="bold reverse")
        text.append(f"  {now:%H:%M:%S} UTC   ran {story.ran}   ")
        text.append(f"failed {story.failed}", style="red" if story.failed else "")
        text.append(f"   mails {story.mailed}   ")
        left = (
            f"{humanize_duration(max(0.0, (story.ends - now).total_seconds()))} left"
            if story.ends
            else "stop with Ctrl-C"
        )
        text.append(f"up {humanize_duration((now - story.begun).total_seconds())}, {left}", style="dim")
        return text

    def _due(self, rows: int) -> Table:
        now = self._now()
        grid = _grid("shop / schedule", "description", "next slot")
        ordered = sorted(self._story.upcoming, key=lambda item: (item.next_at is None, item.next_at or now, item.name))
        for item in ordered[:rows]:
            grid.add_row(
                _plain(f"{item.tenant} / {item.name}"), _plain(item.text, "dim"), _plain(demo_words.soon(item, now))
            )
        return grid

    def _ran(self, rows: int) -> Table:
        grid = _grid("", "shop / schedule", "lateness", "result")
        for item, times in _folded(self._story.runs)[-rows:]:
            grid.add_row(*_row(item, times))
        return grid

    def _mails(self, rows: int) -> RenderableType:
        if not self._story.mails:
            return Text("none yet", style="dim")
        return Group(*(_mail(mail) for mail in list(self._story.mails)[-rows:]))

    def _wrong(self) -> RenderableType:
        parts: list[Text] = []
        if note := self._story.note:
            parts.append(_plain(note, "magenta", wrap=True))
        if stopped := self._story.stopped:
            parts.append(_plain(f"{stopped.tenant} / {stopped.name}: {stopped.stopped_by}", "yellow", wrap=True))
        if fault := self._story.fault:
            parts.append(_plain(f"{fault.tenant} / {fault.name}: {fault.said}", "red", wrap=True))
            parts += [_plain(line) for line in fault.place]
        return Group(*parts) if parts else Text("none yet", style="dim")


def _folded(items: Iterable[Run | Missed]) -> list[tuple[Run | Missed, int]]:
    """Fold the live runs of a schedule that ended well into its latest one, or they would push all else away."""
    kept: dict[object, tuple[Run | Missed, int]] = {}
    for number, item in enumerate(items):
        live = isinstance(item, Run) and item.ok and not item.missed
        key: object = (item.tenant, item.name) if live else number
        times = kept.pop(key)[1] + 1 if key in kept else 1
        kept[key] = (item, times)
    return list(kept.values())


def _row(item: Run | Missed, times: int) -> tuple[Text, Text, Text, Text]:
    name = _plain(f"{item.tenant} / {item.name}" + (f"  ×{times}" if times > 1 else ""))
    if isinstance(item, Missed):
        return Text("–", style="dim"), name, Text(""), _plain(demo_words.missed(item), "dim")
    mark = Text("✓", style="green") if item.ok else Text("■" if item.stopped_by else "✗", style="red")
    style = "" if item.ok else "yellow" if item.stopped_by else "red"
    return mark, name, _plain(demo_words.late(item), "dim"), _plain(item.stopped_by or item.said, style)


def _mail(mail: Mail) -> Text:
    text = _plain(f"{', '.join(mail.to)}  ", "dim")
    text.append(_plain(mail.subject))
    return text


def _grid(*columns: str) -> Table:
    grid = Table(box=SIMPLE_HEAD, expand=True, pad_edge=False, header_style="dim", show_edge=False)
    for number, column in enumerate(columns):
        grid.add_column(column, no_wrap=True, overflow="ellipsis", ratio=None if number < len(columns) - 1 else 1)
    return grid


def _panel(title: str, body: RenderableType) -> Panel:
    return Panel(body, title=title, title_align="left", box=ROUNDED, border_style="dim", padding=(0, 1))


def _plain(text: str, style: str = "", *, wrap: bool = False) -> Text:
    # Text of scripts: never markup, never an escape sequence.
    shown = "".join(char if char.isprintable() else " " for char in text)
    return Text(shown, style=style, no_wrap=not wrap, overflow="fold" if wrap else "ellipsis")
