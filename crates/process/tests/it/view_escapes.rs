//! Ways out of a view, tried by a command that runs in one. As the superuser, where the tests run as that one.

use std::fs;

use process::{Mount, ViewSpec};

use crate::support::{Service, test_keeper};
use crate::view_support::{Layers, write_below};

/// Says what worked. Each attempt ends with a look: whatever a program says, what counts is what can be read.
const TRY: &str = "try() { if (eval \"$2\") >/dev/null 2>&1; then echo \"$1\"; fi; }\n";

#[tokio::test]
async fn a_command_in_a_view_has_no_rights_and_no_descriptors() {
    let service = Service::new().await;
    let layers = Layers::new(service.directory.path());
    let view = service.view(layers.spec()).await;
    let script = "grep -E '^(Cap|NoNewPrivs)' /proc/self/status | tr -d '\\t'; ls /proc/$$/fd; awk '{print $1, $2, $3}' /proc/self/uid_map";
    let said = service.says_in(&view, &layers.place, script).await;
    let user = rustix::process::geteuid();
    let none = "0".repeat(16);
    assert_eq!(
        said,
        format!(
            "CapInh:{none}\nCapPrm:{none}\nCapEff:{none}\nCapBnd:{none}\nCapAmb:{none}\nNoNewPrivs:1\n0\n1\n2\n{user} {user} 1\n"
        )
    );
}

#[tokio::test]
async fn what_is_covered_stays_covered() {
    let service = Service::new().await;
    let layers = Layers::new(service.directory.path());
    let data = service.path("data");
    fs::create_dir(&data).unwrap();
    fs::write(data.join("secret"), "secret").unwrap();
    let spec = ViewSpec {
        mounts: vec![layers.overlay(), Mount::Hidden { at: data.clone() }],
        root: layers.place.clone(),
    };
    let view = service.view(spec).await;
    // Somebody else's view, with a command in it.
    let neighbours = Layers::new(&service.path("neighbours"));
    let neighbours_view = service.view(neighbours.spec()).await;
    let sleeping = service.sh_in(&neighbours_view, &neighbours.place, "exec sleep 1000");
    let neighbour = service.processes.spawn(sleeping).await.unwrap();
    let daemon = std::process::id();
    let script = format!(
        "{TRY}P='{place}'; D='{data}'; R='{directory}'; U='{keeper} umount'
        look() {{ [ -e $P/real ] || [ -e $D/secret ]; }}
        found() {{ [ -e $1$P/real ] || [ -e $1$D/secret ]; }}
        try control 'ls $P/base && unshare -U true'
        nested() {{ unshare -Um --keep-caps sh -c \"$1\"; }}
        try nested-control 'mkdir -p $P/m; nested \"mount --bind /usr $P/m && [ -e $P/m/bin ] && $U $P/m && [ ! -e $P/m/bin ]\"'
        try plain look
        try umount 'umount $P; umount -l $D; $U $P; $U $D; look'
        try remount 'mount -o remount,rw $D; touch $D/x'
        try nested 'nested \"$U $P; $U $D; [ -e $P/real ] || [ -e $D/secret ]\"'
        try nested-bind 'nested \"mount --bind $R $P/m; [ -e $P/m/place/real ] || [ -e $P/m/data/secret ]\"'
        try nested-rbind 'nested \"mount --rbind $R $P/m; $U $P/m/place; $U $P/m/data; [ -e $P/m/place/real ] || [ -e $P/m/data/secret ]\"'
        try nested-pivot 'nested \"mount --rbind $R $P; cd $P; mkdir -p old; pivot_root . old; $U data; [ -e data/secret ] || [ -e place/real ]\"'
        try nested-move 'nested \"mount --move $D $P/m; [ -e $D/secret ]\"'
        try nested-remount 'nested \"mount -o remount,bind,rw $D; touch $D/x\"'
        try bind 'mkdir -p $P/m; mount --bind $R $P/m; [ -e $P/m/place/real ]'
        try tmpfs 'mount -t tmpfs none $P'
        try chroot 'chroot $R true'
        try daemon-root 'found /proc/{daemon}/root'
        try daemon-cwd 'ls /proc/{daemon}/cwd/'
        try daemon-fd 'readlink /proc/{daemon}/fd/1 || cat /proc/{daemon}/fdinfo/1'
        try daemon-environ 'cat /proc/{daemon}/environ'
        try daemon-memory 'cat /proc/{daemon}/maps'
        try init-root 'found /proc/1/root'
        try keeper-root 'found /proc/$PPID/root'
        try keeper-fd 'readlink /proc/$PPID/fd/0 || cat /proc/$PPID/fdinfo/0'
        try neighbour-root 'ls /proc/{neighbour}/root/'
        try neighbour-cwd 'ls /proc/{neighbour}/cwd/'
        try neighbour-environ 'cat /proc/{neighbour}/environ'
        try enter-neighbour 'nsenter -t {neighbour} -U -m true'
        try enter-init 'nsenter -t 1 -m true'
        try enter-daemon 'nsenter -t {daemon} -m true || nsenter -t {daemon} -U -m true'
        try enter-keeper 'nsenter -t $PPID -m true || nsenter -t $PPID -U -m true'
        try device 'mknod $P/disk b 254 0'
        try character 'mknod $P/null c 1 3'
        try setuid 'cp /bin/sh $P/sh; chmod u+s $P/sh; [ \"$($P/sh -p -c \"grep -c CapEff:.0000000000000000 /proc/self/status\")\" = 0 ]'
        exit 0",
        neighbour = neighbour.pid(),
        place = layers.place.display(),
        data = data.display(),
        keeper = test_keeper().display(),
        directory = service.directory.path().display(),
    );
    let said = service.says_in(&view, &layers.place, &script).await;
    assert_eq!(said, "control\nnested-control\n");
    // With a confinement, not even a namespace of its own can have other mounts.
    let mut confined = service.sh_in(&view, &layers.place, &script);
    confined.confinement = write_below(&[&layers.place]);
    assert_eq!(service.said(confined).await, "control\n");
    assert_eq!(fs::read_to_string(layers.place.join("real")).unwrap(), "real\n");
    assert_eq!(fs::read_to_string(data.join("secret")).unwrap(), "secret");
}

/// The layers lie where the command can see them, unless they are hidden. A confinement keeps it from writing there.
#[tokio::test]
async fn layers_cannot_be_written_but_through_the_view() {
    let service = Service::new().await;
    let layers = Layers::new(service.directory.path());
    std::os::unix::fs::symlink(&layers.lower, layers.lower.join("link")).unwrap();
    let view = service.view(layers.spec()).await;
    let script = format!(
        "{TRY}L='{lower}'; U='{upper}'
        try control 'echo x > base'
        try lower 'echo x > $L/base'
        try upper 'echo x > $U/sneaked'
        try symlink 'echo x > link/base'
        try own-symlink 'ln -s $L mine; echo x > mine/base'
        try hard-link 'ln $L/base linked'
        try rename 'mv $L/base moved; [ ! -e $L/base ]'
        try root-link 'echo x > /proc/self/root$L/base'
        try cwd-link 'echo x > /proc/self/cwd/../lower/base'
        exit 0",
        lower = layers.lower.display(),
        upper = layers.upper.display(),
    );
    let mut spec = service.sh_in(&view, &layers.place, &script);
    spec.confinement = write_below(&[&layers.place]);
    if process::landlock_support() == process::Enforcement::Full {
        assert_eq!(service.said(spec).await, "control\n");
        assert_eq!(fs::read_to_string(layers.lower.join("base")).unwrap(), "base\n");
    }
}
