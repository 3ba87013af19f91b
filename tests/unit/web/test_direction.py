"""Text of scripts cannot turn the text around it on a page."""

from markupsafe import Markup

from lodger.engine.web.rendering import environment, static


def test_characters_that_turn_text_are_shown_by_their_code() -> None:
    template = environment().from_string("<td>{{ error }}</td><td>{{ state }}</td>")
    shown = template.render(error="no \u202estock\u2066", state=Markup("<b>late</b>"))
    assert shown == r"<td>no \u202estock\u2066</td><td><b>late</b></td>"


def test_an_element_with_text_is_isolated_from_its_neighbours() -> None:
    rules = [line for line in static("dashboard.css").decode().splitlines() if "unicode-bidi: isolate" in line]
    isolated = {name for rule in rules for name in rule.partition("{")[0].replace(",", " ").split()}
    assert {"td", "dd", "li", "a", "code", "pre", "span"} <= isolated
