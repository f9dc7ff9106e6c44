"""Build the page that a package index shows: README.md with absolute links, and the project's addresses.

scikit-build-core calls `dynamic_metadata` when a distribution is built; pyproject.toml says in `repository` where the
project lives. While that is empty no address is written anywhere: links become their words, pictures are left out, and
the metadata have no addresses.
"""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"(?P<picture>!?)\[(?P<words>[^\]]*)\]\((?P<target>[^)\s]+)\)")
ABSOLUTE = re.compile(r"[a-z]+:|#")  # another scheme, or a place on the page itself


def dynamic_metadata(settings, project):
    """Return the fields `readme` and `urls` of the metadata."""
    repository = settings["repository"].rstrip("/")
    reference = "main" if "dev" in project["version"] else f"v{project['version']}"
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return {
        "readme": {"content-type": "text/markdown", "text": long_description(text, repository, reference)},
        "urls": addresses(repository, reference),
    }


def long_description(text, repository, reference):
    """Return a Markdown text whose relative links point to a commit, branch or tag of the repository."""

    def point(link):
        if ABSOLUTE.match(link["target"]):
            return link[0]
        if not repository:
            return "" if link["picture"] else link["words"]
        kind = "raw" if link["picture"] else "blob"
        return f"{link['picture']}[{link['words']}]({repository}/{kind}/{reference}/{link['target']})"

    parts = re.split(r"^(```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if part.startswith("```") else LINK.sub(point, part) for part in parts)


def addresses(repository, reference):
    """Return the addresses that the index lists beside the page."""
    if not repository:
        return {}
    return {
        "Source": repository,
        "Documentation": f"{repository}/blob/{reference}/docs/index.md",
        "Changelog": f"{repository}/blob/{reference}/CHANGELOG.md",
        "Issues": f"{repository}/issues",
    }
