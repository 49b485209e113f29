//! What a user's files have beside their content stays theirs: access lists, other extended attributes, set-user-id.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use protocol::OutcomeKind;
use rustix::fs::{XattrFlags, getxattr, setxattr};

use crate::service_kit::{Kit, shell};

const ACCESS_LIST: &str = "system.posix_acl_access";

/// An access list: user rw, one other user r, the group r, a mask of rw, and others r.
fn access_list() -> Vec<u8> {
    let mut list = 2_u32.to_le_bytes().to_vec();
    for (tag, rights, id) in [
        (1_u16, 6_u16, u32::MAX),
        (2, 4, 12_345),
        (4, 4, u32::MAX),
        (16, 6, u32::MAX),
        (32, 4, u32::MAX),
    ] {
        list.extend(tag.to_le_bytes());
        list.extend(rights.to_le_bytes());
        list.extend(id.to_le_bytes());
    }
    list
}

fn give(path: &Path) {
    setxattr(path, "user.origin", b"elsewhere", XattrFlags::empty()).unwrap();
    setxattr(path, ACCESS_LIST, &access_list(), XattrFlags::empty()).unwrap();
}

/// The access list, the extended attribute, and all bits of the permissions.
fn attributes(path: &Path) -> (Vec<u8>, Vec<u8>, u32) {
    let value = |name: &str| {
        let mut buffer = [0; 256];
        match getxattr(path, name, &mut buffer) {
            Ok(length) => buffer[..length].to_vec(),
            Err(error) => error.to_string().into_bytes(),
        }
    };
    let mode = fs::metadata(path).unwrap().mode() & 0o7777;
    (value(ACCESS_LIST), value("user.origin"), mode)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_apply_and_an_undo_keep_what_the_users_files_have_beside_their_content() {
    let kit = Kit::repository(
        "for name in edit gone from mode plain; do echo $name > $name; chmod 664 $name; done",
    )
    .await;
    let at = |name: &str| kit.workspace.join(name);
    let mut usual = Vec::new();
    for name in ["edit", "gone", "from", "mode"] {
        give(&at(name));
        let set_user = fs::metadata(at(name)).unwrap().mode() | 0o4000;
        fs::set_permissions(at(name), fs::Permissions::from_mode(set_user)).unwrap();
        usual.push(attributes(&at(name)));
    }
    let [edit, gone, from, mode] = usual.try_into().unwrap();
    assert_eq!(edit, (access_list(), b"elsewhere".to_vec(), 0o4664));
    let plain = attributes(&at("plain"));
    let plan = kit.plan("work").await;
    kit.run(
        plan,
        "ann",
        "echo more >> edit; rm gone; mv from to; chmod +x mode; echo more >> plain",
    )
    .await;

    let outcome = kit.apply(&[plan]).await;
    assert_eq!(outcome.kind, OutcomeKind::Done, "{outcome:?}");
    assert_eq!(fs::read_to_string(at("edit")).unwrap(), "edit\nmore\n");
    assert_eq!(attributes(&at("edit")), edit);
    assert_eq!(attributes(&at("to")), from, "it was renamed");
    assert_eq!(attributes(&at("plain")), plain);
    let (_, origin, bits) = attributes(&at("mode"));
    assert_eq!((origin, bits), (mode.1.clone(), 0o4775));
    // Somebody changes what the file has after it was applied: that is theirs as well.
    setxattr(at("edit"), "user.origin", b"here", XattrFlags::empty()).unwrap();

    let outcome = kit.undo(plan).await;
    assert_eq!(outcome.kind, OutcomeKind::Done, "{outcome:?}");
    assert_eq!(attributes(&at("edit")), (edit.0, b"here".to_vec(), edit.2));
    assert_eq!(attributes(&at("gone")), gone);
    assert_eq!(attributes(&at("from")), from);
    assert_eq!(attributes(&at("mode")), mode);
    assert_eq!(attributes(&at("plain")), plain);

    let outcome = kit.apply(&[plan]).await;
    assert_eq!(outcome.kind, OutcomeKind::Done, "{outcome:?}");
    assert_eq!(attributes(&at("to")), from);
    shell(&kit.workspace, "test ! -e gone");
}
