"""PDF and PNG of a figure, read back with other programs."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import zlib

import pytest
import report_samples
from PIL import Image

from hardlook.errors import MissingExtra
from hardlook.extras import is_installed
from hardlook.report.charts import describe
from hardlook.report.charts.standalone import compile_figure, standalone_svg

needs_typst = pytest.mark.skipif(not is_installed("typst"), reason="the extra figures is not installed")


@needs_typst
def test_a_pdf_embeds_its_font_and_has_the_size_of_the_figure():
    pdf = compile_figure(
        standalone_svg(report_samples.dots(), width=85),
        "pdf",
        title="IoU by class",
        words=describe(report_samples.dots()),
    )
    assert pdf.startswith(b"%PDF-")
    streams = pdf + b"".join(_inflated(pdf))
    assert b"SourceSansPro" in streams and b"/FontFile3" in streams
    width = float(streams.split(b"/MediaBox")[1].split(b"[")[1].split(b"]")[0].split()[2])
    assert width / 72 * 25.4 == pytest.approx(85, abs=0.1)


def _inflated(pdf: bytes):
    for part in pdf.split(b"stream\n")[1:] + pdf.split(b"stream\r\n")[1:]:
        try:
            yield zlib.decompressobj().decompress(part)
        except zlib.error:
            continue


@needs_typst
@pytest.mark.skipif(shutil.which("pdftotext") is None, reason="poppler-utils is not installed")
def test_the_text_of_a_pdf_can_be_selected(tmp_path):
    (tmp_path / "a.pdf").write_bytes(compile_figure(standalone_svg(report_samples.slopes()), "pdf"))
    text = subprocess.run(["pdftotext", tmp_path / "a.pdf", "-"], capture_output=True, text=True, check=True).stdout
    assert "class 7" in text and "first model" in text and "0.420" in text


@needs_typst
def test_a_png_has_its_resolution_and_its_page_colour():
    for dark, corner in ((False, (255, 255, 255)), (True, (0x14, 0x17, 0x1B))):
        svg = standalone_svg(report_samples.dots(), width=100, dark=dark, filled=True)
        image = Image.open(io.BytesIO(compile_figure(svg, "png", ppi=127))).convert("RGB")
        assert image.width == pytest.approx(100 / 25.4 * 127, abs=1.5)
        assert image.getpixel((1, 1)) == corner
        assert len(set(image.resize((60, 40)).getdata())) > 10


def test_without_the_extra_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "typst", None)
    monkeypatch.delitem(sys.modules, "typst")
    monkeypatch.setattr("importlib.import_module", _without_typst)
    with pytest.raises(MissingExtra, match=r"hardlook\[figures\]"):
        compile_figure("<svg/>", "pdf")


def _without_typst(name, package=None):
    raise ModuleNotFoundError(f"No module named {name!r}", name=name)
