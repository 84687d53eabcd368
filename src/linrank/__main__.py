"""``python -m linrank`` is the command ``linrank``."""

try:
    from linrank.cli.main import main
except KeyboardInterrupt:
    raise SystemExit(130) from None

if __name__ == "__main__":
    raise SystemExit(main())
