#include <cstdint>

#include "errors.h"
#include "pool.h"

namespace hmc::python {

namespace py = pybind11;

namespace {

// A member of this host that came a moment ago may not have been mapped when we were asked for its
// slot.
PoolSlot slotNow(const SlotOf& slot) {
  if (slot.whole.mapped) return slot.whole;
  auto now = slot.use->pool->slot(slot.whole.rank, slot.whole.space);
  return now.ok() ? *now : slot.whole;
}

// The same, after waiting until it can be reached.
bool isMapped(const SlotOf& slot) {
  if (slotNow(slot).mapped) return true;
  char byte = 0;
  Pool& pool = *slot.use->pool;
  (void)withoutGil([&] { return pool.copy(&byte, slot.whole.address, 1); });
  return slotNow(slot).mapped;
}

std::string whyNotSeen(const SlotOf& slot) {
  if (!isMapped(slot)) return title(slot) + " is not mapped in this process: copy() reaches it";
  return title(slot) + " is on " + slotNow(slot).device.toString() +
         ": copy() it to CPU memory, or use __cuda_array_interface__";
}

int fillSlotBuffer(PyObject* self, Py_buffer* view, int flags) {
  try {
    const auto& slot = py::cast<const SlotOf&>(py::handle(self));
    if (!isMapped(slot) || !slotNow(slot).device.isHost()) {
      PyErr_SetString(PyExc_BufferError, whyNotSeen(slot).c_str());
      return -1;
    }
    return PyBuffer_FillInfo(view, self, slot.address(), static_cast<Py_ssize_t>(slot.range.size),
                             0, flags);
  } catch (py::error_already_set& error) {
    error.restore();
    return -1;
  }
}

void addSlotBuffer(PyHeapTypeObject* type) {
  type->as_buffer.bf_getbuffer = fillSlotBuffer;
  type->ht_type.tp_as_buffer = &type->as_buffer;
}

py::dict slotCudaArray(const SlotOf& slot) {
  if (slot.whole.device.kind != DeviceKind::cuda || !isMapped(slot))
    throw py::attribute_error(title(slot) + " is not mapped CUDA memory");
  return cudaArray(slot.address(), slot.range.size, false);
}

}  // namespace

std::string title(const SlotOf& slot) {
  return "rank " + std::to_string(slot.whole.rank) + "'s " + spaceWord(slot.whole.space) + " slot";
}

void bindSlot(py::module_& module) {
  PublicClass<SlotOf> slot(module, "Slot", py::custom_type_setup(addSlotBuffer),
                           R"(Memory that one member brings to a Pool.

Made by Pool.slot. slot[a:b] is a part of it, in bytes. Where it is CPU memory that is
mapped here, numpy.asarray(slot) and memoryview(slot) show it without a copy; where it
is mapped CUDA memory, torch.as_tensor(slot, device="cuda") does. Views keep the Pool
alive. Once its member or we ourselves have left, their bytes are nobody's.)");
  slot.property("rank", "Whose it is.", [](const SlotOf& self) { return self.whole.rank; })
      .property("space", "\"host\" or \"device\".",
                [](const SlotOf& self) { return spaceWord(self.whole.space); })
      .property("address", "Of its first byte, the same in every process.",
                [](const SlotOf& self) { return reinterpret_cast<uintptr_t>(self.address()); })
      .property("mapped", "Whether its bytes can be read and written at that address.",
                [](const SlotOf& self) { return slotNow(self).mapped; })
      .property("device", "Where it lies: \"cpu\", \"cuda:0\".",
                [](const SlotOf& self) { return slotNow(self).device.toString(); })
      .property("__cuda_array_interface__", "For array libraries, if it is mapped CUDA memory.",
                slotCudaArray)
      .def("__repr__", [](const SlotOf& self) {
        return "<hmc.Slot: " + std::to_string(self.range.size) + " bytes of " + title(self) +
               (slotNow(self).mapped ? ", mapped>" : ">");
      });
  bindRange(slot);
}

}  // namespace hmc::python
