"""Pictures of pages: each against the one that was kept, or against another of the same page."""

from __future__ import annotations

import base64
from pathlib import Path

from browser import Browser

KEPT = Path(__file__).parent / "pictures"
# A quarter of the window: letters are shades there, and their fonts matter little.
SCALE = 0.25
# How much of a channel may differ, of 255, and how many of the dots may differ by more.
_SHADE, _PART = 48, 0.02
_DIFFER = """
(async (one, other) => {
  const dots = async (png) => {
    const image = new Image();
    image.src = "data:image/png;base64," + png;
    await image.decode();
    const canvas = new OffscreenCanvas(image.width, image.height);
    const drawn = canvas.getContext("2d");
    drawn.drawImage(image, 0, 0);
    return drawn.getImageData(0, 0, image.width, image.height).data;
  };
  const [first, second] = await Promise.all([dots(one), dots(other)]);
  if (first.length !== second.length) return 1;
  let differ = 0;
  for (let at = 0; at < first.length; at += 4) {
    if ([0, 1, 2].some((channel) => Math.abs(first[at + channel] - second[at + channel]) > SHADE)) differ += 1;
  }
  return differ / (first.length / 4);
})("ONE", "OTHER")
"""


def differ(browser: Browser, one: bytes, other: bytes) -> float:
    """Which part of their dots differs."""
    texts = [base64.b64encode(png).decode() for png in (one, other)]
    script = _DIFFER.replace("SHADE", str(_SHADE)).replace('"ONE"', f'"{texts[0]}"').replace('"OTHER"', f'"{texts[1]}"')
    return browser.js(script, waits=True)


def check(browser: Browser, name: str, *, update: bool) -> str:
    """Holds the page to the picture that is kept of it, or keeps this one; says which."""
    now, kept = browser.shot(SCALE), KEPT / f"{name}.png"
    if update:
        KEPT.mkdir(exist_ok=True)
        kept.write_bytes(now)
        return "kept"
    if not kept.exists():
        return "none is kept of it"
    part = differ(browser, kept.read_bytes(), now)
    if part > _PART:
        wrong = kept.with_suffix(".now.png")
        wrong.write_bytes(now)
        raise AssertionError(f"{name}: {part:.1%} of its dots are others than in {kept}: look at {wrong}, and --update keeps it")
    return f"{part:.2%} of its dots are others"


def is_steady(browser: Browser, first: bytes) -> bool:
    """Whether a page that was opened again looks as it did."""
    return differ(browser, first, browser.shot(SCALE)) <= _PART
