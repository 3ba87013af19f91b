"""Marks of a drawn figure."""

from xml.etree import ElementTree

_SVG = "{http://www.w3.org/2000/svg}"


def marks(root: ElementTree.Element, name: str) -> list[float]:
    """Where the marks of a library stand, from left to right of the picture."""
    (group,) = [each for each in root.iter(f"{_SVG}g") if each.get("id") == name]
    return [float(each.get("x", "0")) for each in group.iter(f"{_SVG}use")]
