"""The application of the tests with gunicorn --preload. Its master made IDs before it forked."""

import itertools
import json
import os

from vesta_id import Vesta

folder = os.environ["VESTA_TEST_FOLDER"]
ids = Vesta(state_dir=folder, store=f"sqlite:{folder}/vesta.db")
ids.next_id()
naive = itertools.count(ids.next_id())  # each worker inherits it


def app(environ, start_response):
    if environ["PATH_INFO"] == "/naive":
        made = list(itertools.islice(naive, 10))
    else:
        made = ids.next_ids(1000)
    body = json.dumps({"pid": os.getpid(), "ids": made}).encode()
    start_response("200 OK", [("content-type", "application/json"), ("content-length", str(len(body)))])
    return [body]
