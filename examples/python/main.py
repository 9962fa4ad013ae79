"""A form's whole life by gRPC: made, activated, answered, read, and its webhook checked."""

import hashlib
import hmac
import os
import queue
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "gen"))

import grpc
from headlessforms.v1 import definition_pb2, errors_pb2
from headlessforms.v1 import forms_pb2, forms_pb2_grpc
from headlessforms.v1 import sessions_pb2, sessions_pb2_grpc
from headlessforms.v1 import submissions_pb2, submissions_pb2_grpc
from headlessforms.v1 import webhooks_pb2, webhooks_pb2_grpc
from google.protobuf.any_pb2 import Any
from google.protobuf.struct_pb2 import Struct

SECRET = "a secret of sixteen"
KEY = (("authorization", f"Bearer {os.environ['API_KEY']}"),)


def main() -> None:
    channel = grpc.insecure_channel(os.environ.get("GRPC_TARGET", "localhost:8081"))
    forms = forms_pb2_grpc.FormsServiceStub(channel)
    submissions = submissions_pb2_grpc.SubmissionsServiceStub(channel)
    sessions = sessions_pb2_grpc.SessionsServiceStub(channel)
    webhooks = webhooks_pb2_grpc.WebhooksServiceStub(channel)

    definition = definition_pb2.FormDefinition(
        name="Contact",
        slug="contact",
        fields=[
            definition_pb2.FormField(id="email", type=definition_pb2.FORM_FIELD_TYPE_EMAIL, required=True),
            definition_pb2.FormField(id="note", type=definition_pb2.FORM_FIELD_TYPE_TEXTAREA, max_length=100),
        ],
        delivery=definition_pb2.DeliveryTarget(email=definition_pb2.EmailDelivery()),
    )
    made = forms.CreateForm(forms_pb2.CreateFormRequest(definition=definition), metadata=KEY)
    form_id = made.form.id
    forms.ActivateForm(
        forms_pb2.ActivateFormRequest(form_id=form_id, activation_token=made.activation_token, email="owner@example.com")
    )
    print(f"activated {form_id}")

    received: queue.Queue[tuple[str, bytes]] = queue.Queue()
    receiver = start_receiver(received)
    webhooks.CreateWebhook(
        webhooks_pb2.CreateWebhookRequest(
            url=f"http://127.0.0.1:{receiver.server_port}/",
            events=[webhooks_pb2.WEBHOOK_EVENT_SUBMISSION_CREATED],
            secret=SECRET,
            form_id=form_id,
        ),
        metadata=KEY,
    )

    submitted = submissions.CreateSubmission(
        submissions_pb2.CreateSubmissionRequest(form_id=form_id, answers=struct(email="ada@example.com"))
    )
    print(f"submitted {submitted.submission_id}")
    try:
        submissions.CreateSubmission(
            submissions_pb2.CreateSubmissionRequest(form_id=form_id, answers=struct(email="ada", phone="1"))
        )
    except grpc.RpcError as error:
        for violation in failure_of(error).violations:
            print(f"refused {violation.path}: {errors_pb2.ViolationCode.Name(violation.code)}")

    page = submissions.ListSubmissions(submissions_pb2.ListSubmissionsRequest(form_id=form_id), metadata=KEY)
    print(f"listed {[dict(each.answers) for each in page.submissions]}")

    opened = sessions.CreateSession(sessions_pb2.CreateSessionRequest(form_id=form_id), metadata=KEY)
    ended = sessions.SubmitSession(
        sessions_pb2.SubmitSessionRequest(session_id=opened.session.id, answers=struct(email="bob@example.com")),
        metadata=KEY,
    )
    print(f"session {sessions_pb2.SessionStatus.Name(ended.session.status)}")

    export = submissions.ExportSubmissions(
        submissions_pb2.ExportSubmissionsRequest(form_id=form_id, format=submissions_pb2.EXPORT_FORMAT_NDJSON),
        metadata=KEY,
    )
    print(f"exported {len(b''.join(piece.data for piece in export).splitlines())} lines")

    header, body = received.get(timeout=30)
    print(f"webhook signature {'valid' if is_signed(header, body) else 'INVALID'}")


def struct(**answers: str) -> Struct:
    message = Struct()
    message.update(answers)
    return message


def failure_of(error: grpc.RpcError) -> errors_pb2.Failure:
    """The typed detail of a refused call, from the message google.rpc.Status in its trailers."""
    trailers = dict(error.trailing_metadata())
    for detail in details_in(trailers["grpc-status-details-bin"]):
        failure = errors_pb2.Failure()
        if detail.Is(failure.DESCRIPTOR):
            detail.Unpack(failure)
            return failure
    return errors_pb2.Failure()


def details_in(status: bytes) -> Iterator[Any]:
    """google.rpc.Status has its details, a list of Any, at field 3. With the package grpcio-status: from_call(error)."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = status[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(status):
        tag = varint()
        if tag & 7 == 0:
            varint()
            continue
        size = varint()
        if tag >> 3 == 3:
            yield Any.FromString(status[at : at + size])
        at += size


def start_receiver(received: queue.Queue[tuple[str, bytes]]) -> HTTPServer:
    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            received.put((self.headers["x-service-signature"], body))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def is_signed(header: str, body: bytes) -> bool:
    """`t=<seconds>, v1=<hex>`: HMAC-SHA256 over `<seconds>.<body>`. A real receiver also refuses old times."""
    parts = dict(part.strip().split("=", 1) for part in header.split(","))
    mac = hmac.new(SECRET.encode(), f"{parts['t']}.".encode() + body, hashlib.sha256)
    return hmac.compare_digest(mac.hexdigest(), parts["v1"])


main()
