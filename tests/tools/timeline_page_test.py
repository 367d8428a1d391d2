#!/usr/bin/env python3
"""Opens pages of `coldstream trace` in a browser: timeline_page_test.py BINARY

Checks what is in the document when the page's own script is done. Exit status
77: skipped, because there is no Chromium. TIMELINE_SCREENSHOTS=FOLDER keeps the
pictures.
"""

import html.parser
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True  # nothing into the source tree
import synthetic_trace  # noqa: E402

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
# Virtual time has no frames. Stands before the page's own script: a frame that
# this asked for in the old way might never come, and hold up all later ones.
VIRTUAL_FRAMES = "requestAnimationFrame = (body) => setTimeout(body, 16);"
HOSTILE = "</script><script>document.title='broken'</script><b>&amp;"


def find_browser():
    return next((b for b in map(shutil.which, BROWSERS) if b), None)


class Document(html.parser.HTMLParser):
    """The attributes of <html>, text by tag, cells of tables by their id."""

    def __init__(self, text):
        super().__init__()
        self.root = {}
        self.svg = {}
        self.tags = {}
        self.texts = {}
        self.tables = {}
        self.table = self.open = None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags[tag] = self.tags.get(tag, 0) + 1
        self.open = tag
        self.texts.setdefault(tag, []).append("")
        if tag == "html":
            self.root = attributes
        elif tag == "svg":
            self.svg = attributes
        elif tag == "table":
            self.table = self.tables.setdefault(attributes["id"], [])
        elif tag == "tr":
            self.table.append([])
        elif tag in ("td", "th"):
            self.table[-1].append("")

    def handle_endtag(self, tag):
        if tag == "table":
            self.table = None
        self.open = None

    def handle_data(self, text):
        if self.open in self.texts:
            self.texts[self.open][-1] += text
        if self.table and self.table[-1] and text.strip():
            self.table[-1][-1] += text


class Workplace:
    """A folder, and the two programs that work in it."""

    def __init__(self, binary, browser):
        self.binary, self.browser = binary, browser
        self.folder = tempfile.TemporaryDirectory(prefix="coldstream-")
        self.path = pathlib.Path(self.folder.name)

    def make_page(self, events, script=""):
        trace = self.path / "run.json"
        trace.write_text(json.dumps({"traceEvents": events}))
        subprocess.run([self.binary, "trace", trace], check=True,
                       stderr=subprocess.DEVNULL)
        page = self.path / "run.html"
        text = page.read_text(encoding="utf-8")
        if script:
            page.write_text(text.replace(
                "</head>", f"<script>{VIRTUAL_FRAMES}</script></head>").replace(
                "</body>", f"<script>{script}</script></body>"),
                encoding="utf-8")
        return text

    def browse(self, *arguments):
        """What the browser says on stdout, and on stderr."""
        run = subprocess.run(
            [self.browser, "--headless", "--no-sandbox", "--disable-gpu",
             "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
             f"--user-data-dir={self.path / 'profile'}",
             "--enable-logging=stderr", "--window-size=1400,900",
             "--virtual-time-budget=10000", *arguments,
             (self.path / "run.html").as_uri()],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, timeout=120, check=True)
        return run.stdout.decode(), run.stderr.decode(errors="replace")

    def open_page(self):
        text, log = self.browse("--dump-dom")
        return Document(text), [line for line in log.splitlines()
                                if "CONSOLE" in line]


def milliseconds(microseconds):
    """As the page writes what is from 10 ms to 1 s."""
    value = microseconds / 1000
    return f"{value:.0f} ms" if value >= 100 else f"{value:.1f} ms"


class TimelinePageTest(unittest.TestCase):
    work = None

    def open(self, events, script=""):
        self.source = self.work.make_page(events, script)
        document, console = self.work.open_page()
        self.assertEqual(console, [])
        self.assertNotIn("data-error", document.root)
        self.assertEqual(document.root.get("data-ready"), "true")
        return document

    def test_shows_lanes_stalls_and_sums(self):
        trace = synthetic_trace.make_trace()
        page = self.open(trace.events)
        labels = page.texts["text"]
        for name in [*synthetic_trace.NAMES.values(), "free slots",
                     "bytes in flight", "pass 0", "pass 2"]:
            self.assertIn(name, labels)

        for cause, row in zip(["waits for disk", "waits for upload"],
                              page.tables["stalls"][1:]):
            stalls = [s for s in trace.stalls() if s["name"].startswith(cause)]
            total = sum(stall["dur"] for stall in stalls)
            self.assertEqual(row[:3],
                             [cause, str(len(stalls)), milliseconds(total)])
        everything = sum(stall["dur"] for stall in trace.stalls())
        self.assertEqual(page.tables["stalls"][3][:3],
                         ["all", str(len(trace.stalls())),
                          milliseconds(everything)])

        lanes = {row[0]: row for row in page.tables["lanes"][1:]}
        reads = synthetic_trace.PASSES * synthetic_trace.UNITS
        self.assertEqual(lanes["disk"][1], str(reads))
        self.assertEqual(lanes["disk"][4], "6.23 GB")
        self.assertTrue(lanes["disk"][5].endswith(" GB/s"))
        self.assertEqual(lanes["stall"][4:], ["", ""])
        self.assertEqual(page.tables["pass-figures"][0], ["passes", "3"])
        self.assertEqual([row[0] for row in page.tables["passes"][1:]],
                         ["0", "1", "2"])

    def test_needs_nothing_but_itself(self):
        self.open(synthetic_trace.make_trace(1).events)
        for needle in ("http:", "https:", "src=", "@import", "url("):
            self.assertNotIn(needle, self.source.replace(
                "http://www.w3.org/2000/svg", "").replace("url(#plot)", ""))

    def test_names_are_text_whatever_they_hold(self):
        page = self.open([
            {"ph": "M", "pid": 1, "tid": 1, "name": "thread_name",
             "args": {"name": "stall"}},
            {"ph": "X", "pid": 1, "tid": 1, "name": HOSTILE, "ts": 0,
             "dur": 5}])
        self.assertEqual(page.texts["title"], ["run.json – Coldstream timeline"])
        self.assertNotIn("b", page.tags)
        self.assertEqual(page.tables["stalls"][1][0], HOSTILE)

    def test_a_trace_of_nothing_has_a_page(self):
        page = self.open([])
        self.assertIn(["It never waited."], page.tables["stalls"])

    def test_mouse_and_keys_change_what_is_in_view(self):
        page = self.open(synthetic_trace.make_trace().events, """
          const chart = document.getElementById('chart');
          const frame = () => new Promise((done) => setTimeout(done, 100));
          const key = (key) => document.dispatchEvent(
              new KeyboardEvent('keydown', {key, cancelable: true}));
          const mouse = (kind, type, options) => chart.dispatchEvent(new kind(
              type, {clientX: 700, clientY: 190, cancelable: true, ...options}));
          const seen = [];
          const see = async (what) => {
            await frame();
            seen.push([what, +chart.dataset.from, +chart.dataset.to]);
          };
          chart.setPointerCapture = () => {};  // there is no pointer
          (async () => {
            await see('start');
            key('+'); await see('+');
            key('ArrowRight'); await see('right');
            mouse(WheelEvent, 'wheel', {deltaY: -300}); await see('wheel');
            mouse(PointerEvent, 'pointerdown', {button: 0});
            mouse(PointerEvent, 'pointermove', {clientX: 800});
            mouse(PointerEvent, 'pointerup', {});
            await see('drag');
            mouse(PointerEvent, 'pointermove', {});
            document.documentElement.dataset.tip =
                document.getElementById('tooltip').textContent;
            key('-'); await see('-');
            key('f'); await see('fit');
            document.querySelector('#passes tbody tr').click();
            await see('pass');
            document.documentElement.dataset.seen = JSON.stringify(seen);
          })();""")
        views = {what: (begin, end) for what, begin, end in
                 json.loads(page.root["data-seen"])}
        length = {what: end - begin for what, (begin, end) in views.items()}
        self.assertLess(length["+"], length["start"])
        self.assertGreater(views["right"][0], views["+"][0])
        self.assertLess(length["wheel"], length["right"])
        self.assertLess(views["drag"][0], views["wheel"][0])
        self.assertAlmostEqual(length["drag"], length["wheel"], delta=1)
        self.assertGreater(length["-"], length["drag"])
        self.assertEqual(views["fit"], views["start"])
        self.assertLess(length["pass"], length["start"])
        for fact in ("lane", "duration", "bytes", "GB/s"):
            self.assertIn(fact, page.root["data-tip"])

    def test_two_hundred_thousand_spans_are_few_elements(self):
        passes = 200_000 // (3 * synthetic_trace.UNITS)
        page = self.open(synthetic_trace.make_trace(passes).events)
        self.assertLess(page.tags["path"], 1000)
        self.assertLess(page.tags["text"], 1000)
        self.assertLess(len(page.tables["passes"]), 1010)

    def test_has_a_picture_in_light_and_dark(self):
        self.open(synthetic_trace.make_trace().events)
        folder = os.environ.get("TIMELINE_SCREENSHOTS", str(self.work.path))
        for name, flags in (("light", []), ("dark", ["--force-dark-mode"])):
            picture = pathlib.Path(folder) / f"timeline-{name}.png"
            self.work.browse(f"--screenshot={picture}", *flags)
            self.assertGreater(picture.stat().st_size, 20_000)


def main():
    binary = pathlib.Path(sys.argv.pop(1)).resolve()
    browser = find_browser()
    if not browser:
        print(f"skipped: no browser here (looked for {', '.join(BROWSERS)}); "
              "tools/install_deps.sh chromium installs one")
        sys.exit(77)
    TimelinePageTest.work = Workplace(binary, browser)
    unittest.main()


if __name__ == "__main__":
    main()
