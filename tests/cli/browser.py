"""Opens a page in Chromium (of QtWebEngine), runs a script there and prints what it returns; console messages fail.

python -m tests.cli.browser PAGE.html SCRIPT.js [WIDTH]
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main(page: str, script: str, width: str = "1200") -> int:
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    os.environ.setdefault("QTWEBENGINE_CHROMIUM_FLAGS", "--disable-gpu --no-sandbox")
    from PyQt6.QtCore import QTimer, QUrl
    from PyQt6.QtWebEngineCore import QWebEnginePage
    from PyQt6.QtWebEngineWidgets import QWebEngineView
    from PyQt6.QtWidgets import QApplication

    app = QApplication(sys.argv[:1])
    complaints: list[str] = []

    class Page(QWebEnginePage):
        def javaScriptConsoleMessage(self, level: object, message: str, line: int, source: str) -> None:
            complaints.append(f"line {line}: {message}")

    view, shown = QWebEngineView(), Page()
    view.resize(int(width), 1600)
    view.setPage(shown)
    found: list[object] = []

    def loaded(fine: bool) -> None:
        if not fine:
            app.exit(3)
            return
        shown.runJavaScript(Path(script).read_text(), lambda result: (found.append(result), app.exit(0)))

    shown.loadFinished.connect(loaded)
    view.show()
    shown.load(QUrl.fromLocalFile(os.path.abspath(page)))
    QTimer.singleShot(60_000, lambda: app.exit(4))
    code = app.exec()
    print(found[0] if found else "")
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    sys.stdout.flush()
    os._exit(code or bool(complaints))  # Qt's own end can wait for helper processes


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
