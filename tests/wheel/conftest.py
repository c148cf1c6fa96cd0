def pytest_addoption(parser):
    parser.addoption(
        "--update-wheel", action="store_true", help="write tests/wheel/contents.txt from the wheel as built"
    )
