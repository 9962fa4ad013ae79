from abc import ABCMeta
from collections.abc import MutableMapping, MutableSequence
from typing import Any, TypeVar

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

class RepeatedScalarFieldContainer(MutableSequence[_Value], metaclass=ABCMeta): ...

class RepeatedCompositeFieldContainer(MutableSequence[_Value], metaclass=ABCMeta):
    def add(self, **kwargs: Any) -> _Value: ...

class ScalarMap(MutableMapping[_Key, _Value], metaclass=ABCMeta): ...

class MessageMap(MutableMapping[_Key, _Value], metaclass=ABCMeta):
    def get_or_create(self, key: _Key) -> _Value: ...
