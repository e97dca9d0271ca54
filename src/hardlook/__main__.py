"""`python -m hardlook` is `hardlook`."""

from hardlook.commands.app import main

if __name__ == "__main__":
    main()
