from typing_extensions import Self

from google.protobuf.descriptor import Descriptor

class Message:
    DESCRIPTOR: Descriptor
    def SerializeToString(self) -> bytes: ...
    @classmethod
    def FromString(cls, s: bytes) -> Self: ...
