from typing import Generic, TypeVar

_Value = TypeVar("_Value", bound=int)

class _EnumTypeWrapper(type, Generic[_Value]):
    def Name(self, number: _Value) -> str: ...
    def Value(self, name: str) -> _Value: ...
