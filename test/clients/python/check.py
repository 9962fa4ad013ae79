"""What examples/python does not show by gRPC, such as gzip, deadlines, uploads and retries; everything by Connect as JSON."""

import base64
import gzip
import json
import os
import struct
import sys
from http.client import HTTPConnection, RemoteDisconnected
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "examples/python/gen"))

import grpc
from headlessforms.v1 import submissions_pb2, submissions_pb2_grpc
from headlessforms.v1 import uploads_pb2, uploads_pb2_grpc
from google.protobuf.struct_pb2 import Struct

FORM_ID, LARGE_FORM_ID, UPLOAD_ID = (os.environ[name] for name in ("FORM_ID", "LARGE_FORM_ID", "UPLOAD_ID"))
AUTHORIZATION = f"Bearer {os.environ['API_KEY']}"
NOTE = "x" * 20_000
PIECES = [b"x" * 100_000] * 20
DEADLINE_S = 0.4
WATCH_MS = 3000
# As docs/rpc.md has it for all services.
RETRIES = {
    "methodConfig": [
        {
            "name": [{"service": "headlessforms.v1.SubmissionsService"}],
            "retryPolicy": {
                "maxAttempts": 4,
                "initialBackoff": "0.2s",
                "maxBackoff": "5s",
                "backoffMultiplier": 2,
                "retryableStatusCodes": ["UNAVAILABLE"],
            },
        }
    ]
}


def check_grpc():
    key = (("authorization", AUTHORIZATION),)
    channel = grpc.insecure_channel(os.environ["GRPC_TARGET"])
    submissions = submissions_pb2_grpc.SubmissionsServiceStub(channel)
    uploads = uploads_pb2_grpc.UploadsServiceStub(channel)

    answers = Struct()
    answers.update({"email": "ada@example.com", "note": NOTE})
    made = submissions.CreateSubmission(
        submissions_pb2.CreateSubmissionRequest(form_id=FORM_ID, answers=answers),
        compression=grpc.Compression.Gzip,
    )
    read = submissions.GetSubmission(
        submissions_pb2.GetSubmissionRequest(submission_id=made.submission_id), metadata=key
    )
    print("grpc gzip", len(read.submission.answers["note"]))

    try:
        watch = submissions_pb2.WatchSubmissionsRequest(form_id=LARGE_FORM_ID)
        for _ in submissions.WatchSubmissions(watch, metadata=key, timeout=DEADLINE_S):
            pass
    except grpc.RpcError as error:
        print("grpc deadline", error.code().name)

    count, token = 0, None
    while token != "":
        request = submissions_pb2.ListSubmissionsRequest(form_id=LARGE_FORM_ID, page_size=100, page_token=token)
        page = submissions.ListSubmissions(request, metadata=key)
        count, token = count + len(page.submissions), page.next_page_token
    print("grpc listed", count)

    export = submissions_pb2.ExportSubmissionsRequest(
        form_id=LARGE_FORM_ID, format=submissions_pb2.EXPORT_FORMAT_NDJSON
    )
    file = b"".join(piece.data for piece in submissions.ExportSubmissions(export, metadata=key))
    print("grpc exported", len(file.splitlines()))

    parts = (
        uploads_pb2.UploadFileRequest(form_id=LARGE_FORM_ID, field_id="cv", content=piece) for piece in PIECES
    )
    print("grpc uploaded", uploads.UploadFile(parts, metadata=key).upload.size)
    download = uploads.GetUpload(uploads_pb2.GetUploadRequest(upload_id=UPLOAD_ID), metadata=key)
    print("grpc downloaded", sum(len(piece.content) for piece in download))

    lossy = grpc.insecure_channel(
        os.environ["LOSSY_GRPC_TARGET"], options=[("grpc.service_config", json.dumps(RETRIES))]
    )
    mark = "python by grpc"
    answers = Struct()
    answers.update({"email": "ada@example.com", "note": mark})
    submissions_pb2_grpc.SubmissionsServiceStub(lossy).CreateSubmission(
        submissions_pb2.CreateSubmissionRequest(form_id=FORM_ID, answers=answers, idempotency_key=mark)
    )
    print("grpc retried")
    found = submissions.ListSubmissions(
        submissions_pb2.ListSubmissionsRequest(
            form_id=FORM_ID,
            filters=[submissions_pb2.AnswerFilter(field_id="note", eq=mark)],
            include_total=True,
        ),
        metadata=key,
    )
    print("grpc filtered", found.total_size)

    made = submissions.CreateStreamToken(submissions_pb2.CreateStreamTokenRequest(form_id=FORM_ID), metadata=key)
    watch = submissions.WatchSubmissions(
        submissions_pb2.WatchSubmissionsRequest(form_id=FORM_ID),
        metadata=(("authorization", f"Bearer {made.token}"),),
    )
    next(watch)
    print("grpc watched by token")
    watch.cancel()


def check_connect():
    field = {"id": "email", "type": "FORM_FIELD_TYPE_EMAIL", "required": True}
    definition = {"name": "Contact", "slug": "contact", "fields": [field], "delivery": {"email": {}}}
    _, made = call("FormsService/CreateForm", {"definition": definition})
    form_id = made["form"]["id"]
    activation = {"formId": form_id, "activationToken": made["activationToken"], "email": "owner@example.com"}
    print("connect activated", call("FormsService/ActivateForm", activation)[0])

    good = {"formId": form_id, "answers": {"email": "ada@example.com"}}
    print("connect submitted", call("SubmissionsService/CreateSubmission", good)[0])
    bad = {"formId": form_id, "answers": {"email": "ada", "phone": "1"}}
    status, error = call("SubmissionsService/CreateSubmission", bad)
    for violation in failure_in(error)["violations"]:
        print("connect refused", status, error["code"], violation["path"], violation["code"])
    _, page = call("SubmissionsService/ListSubmissions", {"formId": form_id})
    print("connect answers", *(each["answers"]["email"] for each in page["submissions"]))
    _, opened = call("SessionsService/CreateSession", {"formId": form_id})
    answers = {"sessionId": opened["session"]["id"], "answers": {"email": "bob@example.com"}}
    print("connect session", call("SessionsService/SubmitSession", answers)[1]["session"]["status"])

    long = {"formId": FORM_ID, "answers": {"email": "ada@example.com", "note": NOTE}}
    _, made = call("SubmissionsService/CreateSubmission", long, {"content-encoding": "gzip"})
    _, read = call("SubmissionsService/GetSubmission", {"submissionId": made["submissionId"]})
    print("connect gzip", len(read["submission"]["answers"]["note"]))

    watch = [{"formId": LARGE_FORM_ID}]
    timeout = {"connect-timeout-ms": str(int(DEADLINE_S * 1000))}
    _, end = stream("SubmissionsService/WatchSubmissions", watch, timeout)
    print("connect deadline", end["error"]["code"])

    count, token = 0, None
    while token != "":
        listing = {"formId": LARGE_FORM_ID, "pageSize": 100, "pageToken": token}
        _, page = call("SubmissionsService/ListSubmissions", listing)
        count, token = count + len(page["submissions"]), page.get("nextPageToken", "")
    print("connect listed", count)

    export = [{"formId": LARGE_FORM_ID, "format": "EXPORT_FORMAT_NDJSON"}]
    pieces, _ = stream("SubmissionsService/ExportSubmissions", export)
    file = b"".join(base64.b64decode(piece["data"]) for piece in pieces)
    print("connect exported", len(file.splitlines()))

    target = {"formId": LARGE_FORM_ID, "fieldId": "cv"}
    parts = [{**target, "content": base64.b64encode(piece).decode()} for piece in PIECES]
    [stored], _ = stream("UploadsService/UploadFile", parts)
    print("connect uploaded", stored["upload"]["size"])
    pieces, _ = stream("UploadsService/GetUpload", [{"uploadId": UPLOAD_ID}])
    print("connect downloaded", sum(len(base64.b64decode(piece.get("content", ""))) for piece in pieces))

    mark = "python by connect"
    answers = {"email": "ada@example.com", "note": mark}
    submit = {"formId": FORM_ID, "answers": answers, "idempotencyKey": mark}
    try:
        call("SubmissionsService/CreateSubmission", submit, target=os.environ["LOSSY_HTTP_TARGET"])
    except RemoteDisconnected:
        call("SubmissionsService/CreateSubmission", submit, target=os.environ["LOSSY_HTTP_TARGET"])
    print("connect retried")
    search = {"formId": FORM_ID, "filters": [{"fieldId": "note", "eq": mark}], "includeTotal": True}
    print("connect filtered", call("SubmissionsService/ListSubmissions", search)[1]["totalSize"])

    token = call("SubmissionsService/CreateStreamToken", {"formId": FORM_ID})[1]["token"]
    bearer = {"authorization": f"Bearer {token}", "connect-timeout-ms": str(WATCH_MS)}
    # On a busy machine nothing may come in time.
    while not stream("SubmissionsService/WatchSubmissions", [{"formId": FORM_ID}], bearer)[0]:
        pass
    print("connect watched by token")


def call(method, message, headers={}, target=os.environ["HTTP_TARGET"]):
    """A unary call: its status and its JSON, which is the reply or the error."""
    body = json.dumps(message).encode()
    if headers.get("content-encoding") == "gzip":
        body = gzip.compress(body)
    return post(method, "application/json", body, {"accept-encoding": "gzip", **headers}, target)


def stream(method, messages, headers={}):
    """A streaming call: the messages of the reply, and its end, which holds the error if there is one.

    Each message comes after a byte of flags (1: compressed, 2: the end) and its length in 4 bytes.
    """
    sent = [gzip.compress(json.dumps(message).encode()) for message in messages]
    body = b"".join(struct.pack(">BI", 1, len(message)) + message for message in sent)
    encodings = {"connect-content-encoding": "gzip", "connect-accept-encoding": "gzip", **headers}
    _, reply = post(method, "application/connect+json", body, encodings)
    received, at = [], 0
    while at < len(reply):
        flags, size = struct.unpack_from(">BI", reply, at)
        data = reply[at + 5 : at + 5 + size]
        message = json.loads(gzip.decompress(data) if flags & 1 else data)
        if flags & 2:
            return received, message
        received.append(message)
        at += 5 + size
    raise EOFError("The stream has no end")


def post(method, content_type, body, headers, target=os.environ["HTTP_TARGET"]):
    connection = HTTPConnection(target)
    fixed = {"authorization": AUTHORIZATION, "content-type": content_type, "connect-protocol-version": "1"}
    connection.request("POST", f"/headlessforms.v1.{method}", body, {**fixed, **headers})
    response = connection.getresponse()
    reply = response.read()
    connection.close()
    if response.headers["content-encoding"] == "gzip":
        reply = gzip.decompress(reply)
    return response.status, json.loads(reply) if content_type == "application/json" else reply


def failure_in(error):
    """The typed detail of a refused call, which Connect repeats in JSON."""
    return next(detail["debug"] for detail in error["details"] if detail["type"] == "headlessforms.v1.Failure")


check_grpc()
check_connect()
