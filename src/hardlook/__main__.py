"""`python -m hardlook` is `hardlook`."""

from __future__ import annotations

from hardlook.cli.app import main

if __name__ == "__main__":
    main()
