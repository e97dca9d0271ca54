r"""The sha256 of every published TOSS pair file, to tell the published lists from others of the same name.

>>> is_published("tier1/split0_q_easy_sal", b"1_2008_006637 1_2008_005253\n")
False
"""

from __future__ import annotations

import hashlib

PUBLISHED_SHA256 = {
    "tier1/split0_q_easy_nsal": "570188f9a5076c29dd59713e0ae35fd0e2bceb79083b8d5f540ce3300f45b8c3",
    "tier1/split0_q_easy_sal": "7c09cc3706eb5dfde8bad97c395aa384fb220656dd217fa5bb6891c40d4ab7dc",
    "tier1/split0_q_hard_nsal": "00f6231d0cd280f8e0a0226e4567b07d3d16175de1a9e546c6a3a83579c6aff5",
    "tier1/split0_q_hard_sal": "3451cd421172e743cf4a8dff708be8530e0b3d8dabcc67c88bf3c25c900ee413",
    "tier1/split1_q_easy_nsal": "c4a9dd711d9d4ef92607f01061b0d049692dd9285b53448db1b539d4817519b0",
    "tier1/split1_q_easy_sal": "e070588024362c723466c5464f8ad131b42d80a38ab026c87827490f2b9bc5b7",
    "tier1/split1_q_hard_nsal": "1eb858e3ff3d65a650afe0d28cd5f149b422828ded2eaf94efefc48a04cbae43",
    "tier1/split1_q_hard_sal": "581dbf0762a38852baa2eb83b059a6b64192ab9807547fc551fa81e5bdf8e895",
    "tier1/split2_q_easy_nsal": "5df9f8e4772ddae05976a65772555dca51624dcdbbd78d0c84e8006d02f6490b",
    "tier1/split2_q_easy_sal": "5e1ed383a1c49151eab51ebd6956a907a0e101d88d71b57715d095c4f889f762",
    "tier1/split2_q_hard_nsal": "6479889d55a55f3919e223d941071c99c202341f5842e971e0cdfc597904154a",
    "tier1/split2_q_hard_sal": "f7c739329f62e0b37206ef1ea429c9c9ca46876d9356ceb41fbea387194fbad8",
    "tier1/split3_q_easy_nsal": "d5944747f5d0ee3ff34151bc65deaea55dde73af50bcd05d62e7374d413a8716",
    "tier1/split3_q_easy_sal": "34dea0db4d5e4d1fbbcccf663a4768fccf6d0e221f924a05502bd68ec6c08037",
    "tier1/split3_q_hard_nsal": "ad748215f83975c9e96d22ff088519d373bf61c51e791337ad71fe5648207485",
    "tier1/split3_q_hard_sal": "0cfeaad398c024cb48446f9c0fd1ed239c16bf173d4f35fba9c0fd3ef9c44063",
    "tier2/split0_tier2": "05d1555676e04b420870c98e9bbcab96d20df6f37b3fc0f29c32017aeeb8112b",
    "tier2/split1_tier2": "beb3a0e126cbc8e99f258443a5cc89575753d24db1f3d6be29c3a98acfceeeeb",
    "tier2/split2_tier2": "8fe0bc8e10527229c56d77063aa954f5dd08d3eb9eb39ebec16261318c117774",
    "tier2/split3_tier2": "26fa85dca07924de6828da64cd13b7facbca55fb3a4c8adeeb42198ec5190470",
    "tier3/general_tier": "0f5a96b576dfc95febc0c756d09f8b74ef799032227a169564653bd5cb08d88a",
    "pascal5i/split0_test": "4082a6917c42bf9409a9ec968a05562f2725eeba9bd538876a256defa3b355a0",
    "pascal5i/split1_test": "425a5041f01b39cabd5db8b1460e8c85405978edb728fc7959af5078c19ab536",
    "pascal5i/split2_test": "0e9c697bdf88c6127ee2ce49f777599d29d8caac3fafd789cc4e1979a90daeb1",
    "pascal5i/split3_test": "aed9f905dab9914e1033a1ff7cbdfe9d07cfc461ecd34d34dc00560e41f26d01",
    "coco20i/split0_test": "d9550b51378ba956ed08f4f5b26741602d52462baeab48f5743162f939bf9e9d",
    "coco20i/split1_test": "82ae95e5c68dd886f7d2999ce93fc6d2d77f60d7840be8810440239aed9722a4",
    "coco20i/split2_test": "31401556a340190b9db239d7f422ec26fc3edf0c2871e075addd5b7c98f6a8ef",
    "coco20i/split3_test": "f33e72ba38d2f6219f40f54b2e1da070cf0d72600c21b88ad8b471279a6f3aaf",
}


def is_published(name: str, content: bytes) -> bool:
    """Whether `content` is that of the published list `name`; line ends that Git turned to CR LF do not count."""
    return hashlib.sha256(content.replace(b"\r\n", b"\n")).hexdigest() == PUBLISHED_SHA256.get(name)
