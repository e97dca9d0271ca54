"""A headless browser for pages: opened at a width and in light or dark, asked what it complains about or fetches."""

from __future__ import annotations

import json
from pathlib import Path

LOOKS = [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")]


def show(driver, file: Path, width: int, scheme: str) -> None:
    """Open the page; logs of earlier pages are dropped."""
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    wanted = {"prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce"}
    features = [{"name": name, "value": value} for name, value in wanted.items()]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    driver.get_log("browser")
    driver.get_log("performance")
    driver.get(file.as_uri())


def requested(driver) -> list[str]:
    """Every address that was asked for since the page was opened, the page's own included."""
    messages = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    sent = [
        message["params"]["request"]["url"] for message in messages if message["method"] == "Network.requestWillBeSent"
    ]
    return [url for url in sent if not url.startswith("data:")]
