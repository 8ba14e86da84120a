// What torch's C++ asks of a CUDA device beside its arithmetic: one device, one stream, nothing to wait for.
// The CPU build of torch has no such guard, and autograd ends the process when it asks for one.
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
using namespace c10;

struct Guard final : impl::DeviceGuardImplInterface {
  DeviceType type() const override { return DeviceType::CUDA; }
  Device exchangeDevice(Device) const override { return getDevice(); }
  Device getDevice() const override { return Device(DeviceType::CUDA, 0); }
  void setDevice(Device) const override {}
  void uncheckedSetDevice(Device) const noexcept override {}
  Stream getStream(Device) const override { return Stream(Stream::DEFAULT, getDevice()); }
  Stream getNewStream(Device, int) const override { return getStream(getDevice()); }
  Stream exchangeStream(Stream stream) const override { return stream; }
  DeviceIndex deviceCount() const noexcept override { return 1; }
};
static Guard guard;
static impl::DeviceGuardImplRegistrar registrar(DeviceType::CUDA, &guard);

struct Hooks final : at::CUDAHooksInterface {
  void init() const override {}
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  DeviceIndex current_device() const override { return 0; }
};
// torch looks for its hooks once, while it is imported, and keeps the object: from here on it behaves like ours.
static Hooks hooks;
static bool pretending = ((*(void**)&at::detail::getCUDAHooks() = *(void**)&hooks), true);
