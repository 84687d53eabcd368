"""``python -m linrank`` is the command ``linrank``."""

from linrank.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
