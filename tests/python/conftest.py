"""Lets tools/run_tests.py count cases: a report beside those of the GoogleTest programs."""

import os

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    reports = os.environ.get("GTEST_OUTPUT", "")
    name = os.environ.get("HMC_TEST_NAME")
    if reports.startswith("xml:") and name and not config.option.xmlpath:
        config.option.xmlpath = os.path.join(reports[len("xml:"):], name + ".xml")
