// Memory of a device, by the type's name: allocate, copy there and back, release.

#include <hmc.h>

int main() {
  hmc::Memory memory(0, hmc::MemoryType::NVIDIA_GPU);
  void* place = nullptr;
  if (memory.allocateBuffer(&place, 1 << 20) != hmc::status_t::SUCCESS) return 1;

  std::vector<char> there(1 << 20, 'z');
  std::vector<char> back(1 << 20);
  memory.copyHostToDevice(place, there.data(), there.size());
  memory.copyDeviceToHost(back.data(), place, back.size());
  memory.freeBuffer(place);
  return there == back ? 0 : 2;
}
