"""Hooks of MkDocs: the navigation and llms.txt from docs/index.md, files beside docs/ that pages link to, no request to another host."""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
#: Folders beside docs/ whose files pages link to; the site has copies.
BESIDE = ("examples", "deploy")
#: Pages that lie beside docs/, by their names on the site; security.md is another page.
ROOT_PAGES = {"CONTRIBUTING": "contributing.md", "SECURITY": "security-policy.md"}
_SECTION = re.compile(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\[([^\]]+)\]\(([^)#\s]+\.md)\)")
_OUT = re.compile(rf"(\]\((?:\.\./)*)\.\./((?:{'|'.join(BESIDE)})/)")
#: What a browser loads by itself. Links that a reader follows are no requests of the page.
_LOADED = re.compile(
    r"""<(?:script|img|iframe|source|video|audio)\b[^>]*\bsrc=["']?(?:https?:)?//[^>]*>"""
    r"""|<link\b(?![^>]*\brel=["']?canonical)[^>]*\bhref=["']?(?:https?:)?//[^>]*>""",
    re.IGNORECASE,
)


def navigation(index: str) -> list[dict[str, object]]:
    """Return the sections of the index with their pages, in order."""
    pages = [(title, _LINK.findall(text)) for title, text in _SECTION.findall(index)]
    return [{title: [{name: path} for name, path in links]} for title, links in pages if links]


def _on_the_site(markdown: str) -> str:
    """Let links to pages beside docs/ lead to their pages of the site."""
    for name, page in ROOT_PAGES.items():
        markdown = markdown.replace(f"](../{name}.md", f"]({page}")
    return markdown


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Set the navigation."""
    index = _on_the_site((Path(config.docs_dir) / "index.md").read_text())
    config.nav = [{"Lodger": "index.md"}, *navigation(index), {"Changes": "changelog.md"}]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files beside docs/, and the changelog as a page."""
    for folder in BESIDE:
        for path in sorted((ROOT / folder).iterdir()):
            if path.is_file():
                name = f"{folder}/{path.name}" if path.suffix != ".md" else f"{folder}/{path.stem}.txt"
                files.append(File.generated(config, name, abs_src_path=str(path)))
    changes = (ROOT / "CHANGELOG.md").read_text().replace("](docs/", "](")
    files.append(File.generated(config, "changelog.md", content=changes))
    for name in ("CONTRIBUTING", "SECURITY"):
        text = (
            (ROOT / f"{name}.md").read_text().replace("](docs/", "](").replace("](SECURITY.md", "](security-policy.md")
        )
        files.append(File.generated(config, ROOT_PAGES[name], content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links to files beside docs/ lead to their copies."""
    markdown = _on_the_site(markdown)
    return re.sub(r"(\]\([^)]*(?:examples|deploy)/[^)]*)\.md\)", r"\1.txt)", _OUT.sub(r"\1\2", markdown))


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Refuse a page that makes a browser load something from another host."""
    found = _LOADED.search(output)
    if found:
        raise PluginError(f"{page.file.src_uri} loads {found.group()[:200]}")
    return output


def on_post_build(config: MkDocsConfig) -> None:
    """Write llms.txt: the index of the pages in the form that assistants look for (llmstxt.org)."""
    site = Path(config.site_dir)
    lines = [f"# {config.site_name}", "", f"> {config.site_description}"]
    for title, text in _SECTION.findall(_on_the_site((Path(config.docs_dir) / "index.md").read_text())):
        entries = re.sub(
            r"\(([^)#\s]+)\.md(#[^)]*)?\)", r"(\1/\2)", "\n".join(re.findall(r"^\* .*$", text, re.MULTILINE))
        )
        lines += ["", f"## {title}", "", entries.replace("* [", "- [")]
        for target in re.findall(r"\]\(([^)#]+)/", entries):
            if not target.startswith("..") and not (site / target / "index.html").exists():
                raise PluginError(f"llms.txt names {target}, which the site does not have")
    (site / "llms.txt").write_text("\n".join(lines) + "\n")
