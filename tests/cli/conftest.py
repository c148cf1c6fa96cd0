from tests.support.terminal import environ, plain, terminal

__all__ = ["environ", "plain", "terminal"]
