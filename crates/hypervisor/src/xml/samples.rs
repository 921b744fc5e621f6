//! XML as real hypervisors write it, for tests.

/// A domain of the test driver: of somebody else, with elements and addresses that we never write.
pub(super) const FOREIGN: &str = "<domain type='test' id='1'>
  <name>test</name>
  <uuid>6695eb01-f6a4-8304-79aa-97f2502e193f</uuid>
  <metadata><x:y xmlns:x='http://example.org/x'>1</x:y></metadata>
  <memory unit='GiB'>8</memory>
  <currentMemory unit='KiB'>2097152</currentMemory>
  <vcpu placement='static' cpuset='0-3,^2'>2</vcpu>
  <cputune><vcpupin vcpu='1' cpuset='7'/><emulatorpin cpuset='1'/></cputune>
  <numatune><memory mode='interleave' nodeset='0-1'/></numatune>
  <os><type arch='i686' machine='pc-i440fx-7.2'>hvm</type><boot dev='hd'/></os>
  <clock offset='utc'/>
  <devices>
    <disk type='file' device='disk'>
      <source file='/guest/diskimage1'/>
      <target dev='vda' bus='virtio'/>
      <address type='pci' domain='0x0000' bus='0x01' slot='0x00' function='0x0'/>
    </disk>
    <disk type='block' device='disk'><source dev='/dev/sdb'/><target dev='vdb' bus='virtio'/></disk>
    <interface type='network'>
      <mac address='AA:bb:cc:dd:ee:ff'/>
      <source network='default'/>
      <target dev='testnet0'/>
    </interface>
    <interface type='hostdev'><source/></interface>
    <memballoon model='virtio'/>
  </devices>
</domain>";

/// Two cells as libvirt describes them: hyper-threads across, huge pages, one processor switched off, and a cell of memory.
pub(super) const CAPABILITIES: &str = "<capabilities><host><cpu><arch>x86_64</arch></cpu><topology><cells num='3'>
  <cell id='0'>
    <memory unit='KiB'>16777216</memory>
    <pages unit='KiB' size='4'>2097152</pages>
    <pages unit='KiB' size='1048576'>8</pages>
    <distances><sibling id='0' value='10'/><sibling id='2' value='21'/></distances>
    <cpus num='4'>
      <cpu id='0' socket_id='0' die_id='0' core_id='0' siblings='0,4'/>
      <cpu id='1' socket_id='0' die_id='0' core_id='1' siblings='1'/>
      <cpu id='4' socket_id='0' die_id='0' core_id='0' siblings='0,4'/>
      <cpu id='5'/>
    </cpus>
  </cell>
  <cell id='2'>
    <memory unit='KiB'>16777216</memory>
    <cpus num='2'>
      <cpu id='2' socket_id='1' die_id='0' core_id='0' siblings='2-3'/>
      <cpu id='3' socket_id='1' die_id='0' core_id='0' siblings='2-3'/>
    </cpus>
  </cell>
  <cell id='3'><memory unit='KiB'>33554432</memory><cpus num='0'/></cell>
</cells></topology></host></capabilities>";

/// libvirt's stock network.
pub(super) const DEFAULT_NETWORK: &str = "<network>
  <name>default</name>
  <uuid>dd8fe884-6c02-601e-7551-cca97df1c5df</uuid>
  <forward mode='nat'/>
  <bridge name='virbr0' stp='on' delay='0'/>
  <ip address='192.168.122.1' netmask='255.255.255.0'>
    <dhcp><range start='192.168.122.2' end='192.168.122.254'/></dhcp>
  </ip>
</network>";
