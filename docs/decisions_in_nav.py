"""All decisions are in the site's navigation, without being listed in `mkdocs.yml`: a hook that mkdocs calls."""

from __future__ import annotations

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig

TITLE = "Decisions"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Fill in the section of that title."""
    docs = Path(config.docs_dir)
    pages = sorted(str(page.relative_to(docs)) for page in docs.glob("decisions/*.md"))
    for section in config.nav or []:
        if TITLE in section:
            section[TITLE] = pages
    return config
