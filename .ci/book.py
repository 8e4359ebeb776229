"""Makes the pages of a checkout fit into a book: mdbook's preprocessor `checkout`.

Links out of docs/ would lead nowhere in a book. Those to the pages of the checkout's root that readers want lead to copies of these
pages, which are added at the end; all others become the name of the file. `book.py --check FOLDER` says which links of a book that was
made lead nowhere.
"""

import json
import posixpath
import re
import sys
import urllib.parse
from pathlib import Path

ROOT = Path(__file__).parent.parent
# Where each page of the root is in the book.
BROUGHT = {name: f"project/{name.lower()}" for name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")}
# The README is for who looks at the checkout; the book begins with a first page of its own.
FRONT = "README.md"
LINK = re.compile(r"(!?)\[((?:[^][]|\[[^]]*\])*)\]\(([^) ]+)\)")


def mended(text: str, path: str, place: str) -> str:
    """The text of the checkout's page `path`, whose links hold where it is `place` in the book."""

    def link(found: re.Match[str]) -> str:
        mark, name, target = found.groups()
        file, hash, heading = target.partition("#")
        if not file or ":" in file or file.startswith("/"):
            return found[0]
        to = posixpath.normpath(posixpath.join(posixpath.dirname(path), file))
        if to == FRONT:
            heading = hash = ""
        elif to in BROUGHT:
            to = BROUGHT[to]
        elif to.startswith("docs/") and (ROOT / to).is_file():
            to = to.removeprefix("docs/")
        else:
            return f"{name} (`{to}`)" if name.strip("`") != to else f"`{to}`"
        # mdbook names the first page of a folder so.
        to = re.sub(r"(^|/)README\.md$", r"\1index.md", to)
        return f"{mark}[{name}]({posixpath.relpath(to, posixpath.dirname(place) or '.')}{hash}{heading})"

    parts = re.split(r"(^```.*?^```)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if part.startswith("```") else LINK.sub(link, part) for part in parts)


def mend(items: list) -> None:
    for item in items:
        chapter = item.get("Chapter") if isinstance(item, dict) else None
        if chapter:
            if chapter["source_path"]:
                chapter["content"] = mended(chapter["content"], f"docs/{chapter['source_path']}", chapter["source_path"])
            mend(chapter["sub_items"])


def brought(name: str) -> dict:
    text = mended((ROOT / name).read_text(), name, BROUGHT[name])
    title = text.partition("\n")[0].lstrip("# ")
    return {"Chapter": {"name": title, "content": text, "number": None, "sub_items": [], "path": BROUGHT[name], "source_path": None, "parent_names": []}}


def dead(folder: Path) -> list[str]:
    """The links within a book that lead nowhere."""
    found = []
    for page in sorted(folder.rglob("*.html")):
        # Both are made of other pages, and show their links from another place.
        if page.name in ("print.html", "404.html"):
            continue
        for target in re.findall(r'(?:href|src)="([^"#:]+)(?:#[^"]*)?"', page.read_text()):
            if not (page.parent / urllib.parse.unquote(target)).exists():
                found.append(f"{page.relative_to(folder)}: {target}")
    return found


if sys.argv[1:2] == ["supports"]:
    sys.exit(sys.argv[2:] != ["html"])
if sys.argv[1:2] == ["--check"]:
    nowhere = dead(Path(sys.argv[2]))
    print("\n".join(f"a link that leads nowhere: {link}" for link in nowhere), file=sys.stderr, end="\n" if nowhere else "")
    sys.exit(bool(nowhere))
_, book = json.load(sys.stdin)
items = book["items"] if "items" in book else book["sections"]
mend(items)
items += [{"PartTitle": "The project"}, *map(brought, BROUGHT)]
json.dump(book, sys.stdout)
